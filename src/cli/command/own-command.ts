import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants } from 'node:fs'
import { delimiter, isAbsolute, join, relative } from 'node:path'
import { isSingleFile } from '../../disk/own-files.ts'
import { shellWord } from '../text/sanitize.ts'

/** Names the process that waits for this one. */
const waiterVariable = 'RSM_WAITED_FOR_BY'
const endingSignals = ['SIGHUP', 'SIGINT', 'SIGTERM'] as const

/** What to type to start this program again: `rsm`, or where no `rsm` is on the PATH `node bin/run.js`, or the single file. */
export function ownCommand(
  script: string = (isSingleFile ? process.execPath : process.argv[1]) ?? 'rsm',
  path: string = process.env['PATH'] ?? '',
  cwd: string = process.cwd(),
  isAlone: boolean = isSingleFile,
): string {
  if (isOnPath('rsm', path)) return 'rsm'
  const near = relative(cwd, script)
  const isFar = near.startsWith('..') || isAbsolute(near)
  if (isAlone) return shellWord(isFar ? script : `./${near}`)
  return `node ${shellWord(isFar ? script : near)}`
}

export function isOnPath(program: string, path: string): boolean {
  return path.split(delimiter).some((directory) => {
    // npm and npx put these on the PATH of what they start; another terminal does not have them.
    if (directory === '' || directory.endsWith('node_modules/.bin')) return false
    try {
      accessSync(join(directory, program), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

/** The same for a process that this one starts: its program, and the words before those of a command. */
export function ownProcess(): readonly [program: string, words: readonly string[]] {
  // Its path may hold another release by now.
  if (isSingleFile) return ['/proc/self/exe', []]
  return [process.execPath, [...process.execArgv, process.argv[1] ?? '']]
}

/** Whether this process does the work, apart from the one that was typed. */
export const isApart = (): boolean => process.env[waiterVariable] !== undefined

/** Whether nobody waits for it any more. */
export const isForsaken = (): boolean => process.ppid !== Number(process.env[waiterVariable])

/**
 * Runs this command line once more, as a process in a session of its own: it continues when this one is killed, or its terminal
 * is closed. Signals are passed on. Answers its exit code, null where it was killed.
 */
export async function runApart(): Promise<number | null> {
  const [program, words] = ownProcess()
  const child = spawn(program, [...words, ...process.argv.slice(2)], {
    detached: true,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, [waiterVariable]: String(process.pid) },
  })
  const passOn = (signal: NodeJS.Signals) => child.kill(signal)
  for (const signal of endingSignals) process.on(signal, passOn)
  try {
    const [exit] = (await once(child, 'exit')) as [number | null]
    return exit
  } finally {
    for (const signal of endingSignals) process.off(signal, passOn)
  }
}

/** Does the work to its end, though it is told to end, or nobody can read any more what it says. */
export async function undisturbed<T>(heard: (signal: string) => void, work: () => Promise<T>): Promise<T> {
  const stopped = process.stdout.rawListeners('error') as ((error: Error) => void)[]
  for (const listener of stopped) process.stdout.off('error', listener)
  process.stdout.on('error', () => {})
  for (const signal of endingSignals) process.on(signal, heard)
  try {
    return await work()
  } finally {
    for (const signal of endingSignals) process.off(signal, heard)
    for (const listener of stopped) process.stdout.on('error', listener)
  }
}
