import type { Screen } from './screen.ts'

export const prompt = 'ready> '

/** Ours and the bare one, a prompt on each; `cat` is the command that floods them with so many bytes. */
export interface Pair {
  readonly ours: Screen
  readonly bare: Screen
  readonly cat: string
  readonly catBytes: number
}
