const tones: Record<string, string> = {
  ONLINE: 'good',
  SUCCESS: 'good',
  OPEN: 'good',
  WARNING: 'warn',
  TIMEOUT: 'bad',
  FAILED: 'bad',
  LOST: 'bad',
  UNREACHABLE: 'bad',
  RUNNING: 'busy',
  OFFLINE: 'away',
  'no link': 'away',
}

/** A state as a word with a dot: never by its colour alone. */
export function Badge({ state }: { state: string }) {
  return <span class={`badge ${tones[state] ?? 'quiet'}`}>{state.toLowerCase()}</span>
}
