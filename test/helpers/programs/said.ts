import type { ChildProcess } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'

/** Milliseconds that the last output of an ended program may take to arrive. */
const underway = 500
/** Characters of the last output in an error. */
const longestWords = 2_000

/**
 * The output of a program on stdout, once it contains `wanted`: by default its first line. Rejects if the program ends first,
 * with its last output, also from stderr if that is a pipe.
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

/** Copies a program's stderr to that of the test. */
export function shownErrors(child: ChildProcess): void {
  child.stderr?.on('data', (data: Buffer) => process.stderr.write(data))
}
