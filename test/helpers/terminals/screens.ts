import { mkdir, writeFile } from 'node:fs/promises'
import type { Window } from './tmux.ts'

/** A screen without the parts that differ between runs: task ids, and times with the blanks before them. */
export function steadyScreen(screen: string): string {
  return screen
    .replace(/\b[0-9A-HJKMNP-TV-Z]{26}\b/g, 'TASK')
    .replace(/ +(?:\d+\.\ds|\d+s|\d+m\d\ds)(?= |$)/gm, ' TIME')
    .replace(/[ \t]+$/gm, '')
}

/** Saves a screen with its colours for people to look at: `cat artifacts/NAME.ansi`. */
export async function keepScreen(window: Window, name: string): Promise<void> {
  await mkdir('artifacts', { recursive: true })
  await writeFile(`artifacts/${name}.ansi`, await window.screen())
}
