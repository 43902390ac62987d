/** Milliseconds that a test waits for what must come, however slow the machine: less than the runner's own 120 s, so that the test can say what is missing. */
export const patience = 110_000
