/**
 * Which of these are told of now. `since`: when each changed. What has been so for `grace` is told; where others have changed
 * meanwhile it waits for their grace, too, so that hosts that go down together are one event, but no longer than another
 * `grace`. All in milliseconds of one clock.
 */
export function toldTogether(since: ReadonlyMap<number, number>, now: number, grace: number): number[] {
  const due = [...since].filter(([, at]) => now - at >= grace)
  const isOverdue = due.some(([, at]) => now - at >= 2 * grace)
  return due.length === since.size || isOverdue ? due.map(([id]) => id) : []
}
