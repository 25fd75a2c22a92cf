"""The apps beside which `aj` is measured, each as the introductions to its library write it."""
