import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import type { Fleet } from '../fleet/fleet.ts'
import { binary } from '../fleet/server.ts'
import type { Sshd } from '../fleet/sshd.ts'
import { type watchMemory, wholeProcess } from '../measure.ts'
import type { Row } from '../row.ts'

export const mebibyte: number = 1024 * 1024
/** Milliseconds until garbage of the start-up has been collected. */
const settleTime = 5_000
const growthBound = 48

/** Fleet and sshd for the copies, and the directory of all files. */
export interface Place {
  readonly fleet: Fleet
  readonly sshd: Sshd
  readonly directory: string
}

export const settle = (): Promise<void> => setTimeout(settleTime)

/** Writes an incompressible file. */
export async function writeRandom(path: string, mebibytes: number): Promise<void> {
  const file = createWriteStream(path)
  for (let count = 0; count < mebibytes; count++)
    if (!file.write(randomBytes(mebibyte))) await once(file, 'drain')
  file.end()
  await once(file, 'close')
}

/** Milliseconds of a whole `rsm cp`. */
export function copy({ url, token }: Fleet, ...words: string[]): Promise<number> {
  const env = { ...process.env, RSM_URL: url, RSM_TOKEN: token }
  return wholeProcess(process.execPath, [binary, 'cp', ...words], { env })
}

export function scp({ options }: Sshd, from: string, to: string): Promise<number> {
  return wholeProcess('scp', ['-q', ...options, from, `localhost:${to}`])
}

/** Memory that a copy costs the server. */
export function memoryRow(what: string, watch: ReturnType<typeof watchMemory>): Row {
  const peak = watch.stop()
  return {
    name: `RSS of the server while ${what}, vs idle`,
    unit: 'MB',
    ours: peak,
    baseline: watch.idle,
    ratio: peak / watch.idle,
    goal: `≤ +${growthBound} MB`,
    met: peak - watch.idle <= growthBound,
  }
}
