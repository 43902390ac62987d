/**
 * Longest wait of a test for an event, in milliseconds, even on a slow machine; the runner waits longer, so that the test
 * reports it.
 */
export const patience = process.env['RSM_TESTS']?.startsWith('long') ? 110_000 : 30_000
