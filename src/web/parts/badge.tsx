const tones: Record<string, string> = {
  ONLINE: 'good',
  SUCCESS: 'good',
  OPEN: 'good',
  DELIVERED: 'good',
  ENABLED: 'good',
  WARNING: 'warn',
  WAITING: 'warn',
  TIMEOUT: 'bad',
  FAILED: 'bad',
  LOST: 'bad',
  SUSPENDED: 'bad',
  GAVE_UP: 'bad',
  UNREACHABLE: 'bad',
  RUNNING: 'busy',
  OFFLINE: 'away',
  'NO LINK': 'away',
}

/** The class of a state's colour. */
export const toneOf = (state: string): string => tones[state] ?? 'quiet'

/** A state as a word with a dot: never by its colour alone. */
export function Badge({ state }: { state: string }) {
  return <span class={`badge ${toneOf(state)}`}>{state.toLowerCase().replaceAll('_', ' ')}</span>
}
