import type { Screen } from './screen.ts'

export const prompt = 'ready> '

/** A shell that shows the prompt. */
export async function ready(opening: Promise<Screen>): Promise<Screen> {
  const screen = await opening
  // Its echo is not the prompt yet.
  await screen.answer(`PS1='rea''dy> '\r`, prompt)
  return screen
}

/** Ours and the bare one, a prompt on each; `cat` is the command that floods them with so many bytes. */
export interface Pair {
  readonly ours: Screen
  readonly bare: Screen
  readonly cat: string
  readonly catBytes: number
}
