import { mkdir, writeFile } from 'node:fs/promises'
import type { Window } from './tmux.ts'

/** A screen without what differs from run to run: ids of tasks, and times with the blanks before them. */
export function steadyScreen(screen: string): string {
  return screen
    .replace(/\b[0-9A-HJKMNP-TV-Z]{26}\b/g, 'TASK')
    .replace(/ +(?:\d+\.\ds|\d+s|\d+m\d\ds)(?= |$)/gm, ' TIME')
    .replace(/[ \t]+$/gm, '')
}

/** Keeps a screen with its colours, so that people can look at it: `cat artifacts/NAME.ansi`. */
export async function keepScreen(window: Window, name: string): Promise<void> {
  await mkdir('artifacts', { recursive: true })
  await writeFile(`artifacts/${name}.ansi`, await window.screen())
}
