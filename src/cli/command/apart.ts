import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { ownProcess } from './own-command.ts'

/** Names the process that waits for this one. */
const variable = 'RSM_WAITED_FOR_BY'
const endings = ['SIGHUP', 'SIGINT', 'SIGTERM'] as const

/** Whether this process does the work, apart from the one that was typed. */
export const isApart = (): boolean => process.env[variable] !== undefined

/** Whether nobody waits for it any more. */
export const isForsaken = (): boolean => process.ppid !== Number(process.env[variable])

/**
 * Runs this command line once more, as a process in a session of its own: it goes on when this one is killed, or its terminal
 * is closed. Signals are passed on. Answers its exit code, null where it was killed.
 */
export async function runApart(): Promise<number | null> {
  const [program, words] = ownProcess()
  const child = spawn(program, [...words, ...process.argv.slice(2)], {
    detached: true,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, [variable]: String(process.pid) },
  })
  const passOn = (signal: NodeJS.Signals) => child.kill(signal)
  for (const signal of endings) process.on(signal, passOn)
  try {
    const [exit] = (await once(child, 'exit')) as [number | null]
    return exit
  } finally {
    for (const signal of endings) process.off(signal, passOn)
  }
}

/** Does the work to its end, though it is told to end, or nobody can read any more what it says. */
export async function undisturbed<T>(heard: (signal: string) => void, work: () => Promise<T>): Promise<T> {
  const stopped = process.stdout.rawListeners('error') as ((error: Error) => void)[]
  for (const listener of stopped) process.stdout.off('error', listener)
  process.stdout.on('error', () => {})
  for (const signal of endings) process.on(signal, heard)
  try {
    return await work()
  } finally {
    for (const signal of endings) process.off(signal, heard)
    for (const listener of stopped) process.stdout.on('error', listener)
  }
}
