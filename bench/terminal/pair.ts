import type { Screen } from './screen.ts'

export const prompt = 'ready> '

/** Waits until a shell shows the prompt. */
export async function ready(opening: Promise<Screen>): Promise<Screen> {
  const screen = await opening
  // Quoted, so that its echo is not the prompt.
  await screen.answer(`PS1='rea''dy> '\r`, prompt)
  return screen
}

/** Our terminal and a bare one, each at a prompt; `cat` is the command that floods them with `catBytes` bytes. */
export interface Pair {
  readonly ours: Screen
  readonly bare: Screen
  readonly cat: string
  readonly catBytes: number
}
