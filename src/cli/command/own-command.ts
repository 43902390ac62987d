import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants } from 'node:fs'
import { delimiter, isAbsolute, join, relative } from 'node:path'
import { isSingleFile } from '../../disk/own-files.ts'
import { shellWord } from '../text/sanitize.ts'

/** Holds the pid of the process that waits for this one. */
const waiterVariable = 'RSM_WAITED_FOR_BY'
const endingSignals = ['SIGHUP', 'SIGINT', 'SIGTERM'] as const

/** Command to start rsm again: `rsm` if that is on the PATH, else `node bin/run.js` or the single executable. */
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
    // npm and npx add these to the PATH of their children only; another terminal lacks them.
    if (directory === '' || directory.endsWith('node_modules/.bin')) return false
    try {
      accessSync(join(directory, program), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

/** Program and leading arguments to start rsm as a child process. */
export function ownProcess(): readonly [program: string, words: readonly string[]] {
  // The file at our path may be a different release by now.
  if (isSingleFile) return ['/proc/self/exe', []]
  return [process.execPath, [...process.execArgv, process.argv[1] ?? '']]
}

/** Whether this is the detached process that `runApart` started. */
export const isApart = (): boolean => process.env[waiterVariable] !== undefined

/** Whether the process that waited for this one is gone. */
export const isForsaken = (): boolean => process.ppid !== Number(process.env[waiterVariable])

/**
 * Runs this command line again in its own session, so that it survives this process and its terminal. Forwards signals.
 * Resolves with its exit code, null if it was killed.
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

/** Runs `work` to its end despite signals to stop and a closed stdout; `heard` receives the signals. */
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
