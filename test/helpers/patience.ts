/** Milliseconds that a test waits for what must come, however slow the machine; the runner waits longer, so that the test says what is missing. */
export const patience = process.env['RSM_TESTS']?.startsWith('long') ? 110_000 : 30_000
