// Uploads a picture, submits the job, and follows it as the answers say: where by Location, when by Retry-After.

const form = document.querySelector("form");
const bar = document.querySelector("progress");
const output = document.querySelector("output");
const gallery = document.querySelector("section");

const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * (Number(seconds) || 2)));

// The answer's JSON. An error carries a sentence for a person: ours in `message`, the API's in `detail` (RFC 9457).
async function read(answer) {
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(said.message ?? said.detail ?? `${answer.status} ${answer.statusText}`);
  return said;
}

// For requests that bear to be sent twice: sent again where no answer came, or 503 with the time to come back.
async function ask(url, options) {
  for (let attempt = 1; ; attempt++) {
    const answer = await fetch(url, options).catch(() => null);
    if (answer && answer.status !== 503) return answer;
    if (attempt === 5) throw new Error("The server cannot be reached; try again later.");
    await pause(answer?.headers.get("Retry-After"));
  }
}

// The key makes it one job, however often this is sent.
function submit(picture, sizes) {
  const headers = { "Content-Type": "application/json", "Idempotency-Key": `thumbnails-of-${picture}` };
  return ask(form.dataset.jobs, { method: "POST", headers, body: JSON.stringify({ picture, sizes }) });
}

// Follows a job from the answer to its submission to its end, and shows each state that it sees.
async function follow(answer, show) {
  await read(answer.clone());
  const url = answer.headers.get("Location");
  for (let tag = null; ; ) {
    // A server that held our last request until there was news need not be spared; else it says when to come back.
    if (!answer.headers.has("Preference-Applied")) await pause(answer.headers.get("Retry-After"));
    answer = await ask(url, { cache: "no-store", headers: tag ? { Prefer: "wait=20", "If-None-Match": tag } : {} });
    if (answer.status === 304) continue;
    const job = await read(answer);
    show(job);
    if (job.status === "succeeded" || job.status === "failed") return job;
    tag = answer.headers.get("ETag");
  }
}

function show({ status, position, progress }) {
  bar.value = progress?.fraction ?? 0;
  output.value = position ? `${status}, number ${position} in the queue` : status;
}

function figure(picture, { size, width, height }) {
  const image = Object.assign(new Image(width, height), { src: `${form.action}/${picture}/${size}.webp`, alt: "" });
  const caption = Object.assign(document.createElement("figcaption"), { textContent: `${width} × ${height}` });
  const made = document.createElement("figure");
  made.append(image, caption);
  return made;
}

async function run() {
  const given = new FormData(form);
  const sizes = given.getAll("size").map(Number);
  output.value = "uploading";
  const { picture } = await read(await fetch(form.action, { method: "POST", body: given }));
  const job = await follow(await submit(picture, sizes), show);
  if (job.status === "failed") throw new Error(job.error.detail);
  gallery.replaceChildren(...job.result.map((thumbnail) => figure(picture, thumbnail)));
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("button");
  button.disabled = true;
  bar.hidden = false;
  gallery.replaceChildren();
  await run().catch((error) => (output.value = error.message));
  bar.hidden = true;
  button.disabled = false;
});
