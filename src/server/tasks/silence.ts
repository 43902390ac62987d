/** Milliseconds beyond its timeout that an execution may be silent before it is LOST (contract §4) … */
export const silence = 10 * 60_000
/** … or that it may be when it has no timeout. */
const silenceWithoutTimeout = 24 * 3600_000

/** `longest`: seconds that the execution may take with all that follows on its script, 0 for any. `silent`: milliseconds since the last word. */
export function isTooSilent(longest: number, silent: number): boolean {
  return silent > (longest === 0 ? silenceWithoutTimeout : longest * 1000 + silence)
}

export const silentError = (silent: number): string => `no word of it for ${Math.round(silent / 1000)} s`
