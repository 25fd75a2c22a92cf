"""Completion in bash, which takes `:` and `=` for ends of words: an address, and `--task=…`, would be torn apart.

So the line is asked about as it was typed, up to the cursor, where click asks about the words that bash makes of it.
And since bash puts what it is given in place of its own last word, what it has torn off before that is left out.
"""

from __future__ import annotations

import os

from click.shell_completion import BashComplete, CompletionItem, add_completion_class, split_arg_string

_SOURCE = """\
%(complete_func)s() {
    local IFS=$'\\n' line="${COMP_LINE:0:COMP_POINT}" type value completion
    for completion in $(env COMP_WORDS="$line" COMP_LAST="$2" %(complete_var)s=bash_complete "$1"); do
        IFS=',' read -r type value <<< "$completion"
        case $type in
            dir) COMPREPLY=(); compopt -o dirnames ;;
            file) COMPREPLY=(); compopt -o default ;;
            plain) COMPREPLY+=("$value") ;;
        esac
    done
    return 0
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class Bash(BashComplete):
    """Completes the last word of a line as the shell reads it."""

    source_template = _SOURCE

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one that is completed, without the name of the command; and that one, perhaps empty."""
        line = os.environ["COMP_WORDS"]
        words = split_arg_string(line)
        last = "" if not words or line[-1:].isspace() else words.pop()
        return words[1:], last

    def format_completion(self, item: CompletionItem) -> str:
        """One line for the script, with what is to stand in place of the last word as bash sees it."""
        _, last = self.get_completion_args()
        typed = last.partition("=")[2] if last.startswith("--") and "=" in last else last
        of_bash = "".join(split_arg_string(os.environ.get("COMP_LAST", typed)))
        torn_off = typed.removesuffix(of_bash) if typed.endswith(of_bash) else ""
        return f"{item.type},{item.value.removeprefix(torn_off)}"


def teach() -> None:
    """From here on click completes so in bash."""
    add_completion_class(Bash)
