/** A person is asked about more hosts than these. */
export const unasked = 20

/** Whether a person is asked before it runs on `count` hosts of a fleet of `total`: about many, and about all there are. */
export function asksFirst(count: number, total: number): boolean {
  return count > unasked || (count > 1 && count >= total)
}
