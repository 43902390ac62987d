export type PlayerKey = 'pause' | 'step' | 'quit'

/** The keys in what a terminal sent; its answers to questions in the output begin with an escape, and are none. */
export function playerKeysOf(text: string): PlayerKey[] {
  if (text.startsWith('\u001b')) return []
  return Array.from(text).flatMap((key): PlayerKey[] => {
    if (key === ' ') return ['pause']
    if (key === '.') return ['step']
    return key === 'q' || key === '\u0003' ? ['quit'] : []
  })
}
