import type { ChildProcess } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'

/** Milliseconds that what an ended program has said may still be on its way. */
const underway = 500
/** Characters of its last words. */
const longestWords = 2_000

/**
 * What a program has said on stdout, once that holds `wanted`: by default its first line. Rejects when the program ends
 * before, with its last words: those on stderr, where that is a pipe.
 */
export async function said(child: ChildProcess, wanted = '\n'): Promise<string> {
  let stdout = ''
  let stderr = ''
  child.stderr?.on('data', (data: Buffer) => {
    stderr = (stderr + data.toString()).slice(-longestWords)
  })
  return new Promise((resolve, reject) => {
    child.stdout?.on('data', (data: Buffer) => {
      stdout += data.toString()
      if (stdout.includes(wanted)) resolve(stdout)
    })
    const ended = async () => {
      await delay(underway)
      const end = child.signalCode ?? child.exitCode
      reject(new Error(`ended with ${end} before it said ${JSON.stringify(wanted)}: ${stdout}${stderr}`))
    }
    child.once('error', reject)
    if (child.exitCode !== null || child.signalCode !== null) void ended()
    else child.once('exit', () => void ended())
  })
}

/** Shows in the test's own log what a program says on stderr. */
export function shownErrors(child: ChildProcess): void {
  child.stderr?.on('data', (data: Buffer) => process.stderr.write(data))
}
