import { execFile } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { CopyOrder, FetchOrder, FileOfTask } from '../../core/protocol/messages.ts'
import type { Endpoint } from '../../net/connect.ts'
import { type Environment, proxyVariables } from '../../net/proxy.ts'
import type { Log } from '../log.ts'
import type { Account } from '../processes/account.ts'
import { ownCommand, ownProcess } from '../processes/own-process.ts'

const orderName = 'order.json'
export const reportName = 'report'
export const partsName = 'parts'
export const cancelTokenName = 'leave'
/** Bytes that a report takes on the disk from the beginning on, so that a full one does not lose it. */
export const reportBytes = 8192

/** Milliseconds for a sweep; a disk that does not answer holds up no result. */
const sweepPatience = 20_000

const run = promisify(execFile)

/** The order of a process for files, in the directory of its execution. */
export interface FileOrder extends Endpoint {
  readonly taskId: string
  /** Of the agent, where its token is. */
  readonly dataDir: string
  /** What proxies its transfers take. */
  readonly environment: Record<string, string>
  /** Whom it becomes, before it touches a file of this host; null for the agent's own user. */
  readonly runAs: Pick<Account, 'name' | 'uid' | 'gid'> | null
  readonly copy?: CopyOrder
  readonly fetch?: FetchOrder
  /** What a script is to read: it goes into this directory. */
  readonly stdin?: FileOfTask
}

/** A temporary file of an order, by the directory that it lies in, which somebody may have moved. */
export interface Part {
  readonly path: string
  readonly dev: number
  readonly ino: number
  readonly name: string
}

/** How it ended, as that process says it. */
export interface FileReport {
  readonly changed?: boolean
  readonly error?: string
}

export const readOrder = (directory: string): FileOrder =>
  JSON.parse(readFileSync(join(directory, orderName), 'utf8')) as FileOrder

/** Empty where there is none yet. */
export function reportOf(directory: string): FileReport {
  try {
    return JSON.parse(readFileSync(join(directory, reportName), 'utf8')) as FileReport
  } catch {
    return {}
  }
}

/**
 * Cancels an order: what has not taken its place by then does not (contract §13). Takes no room on the
 * disk, and is there for whoever comes after this agent.
 */
export function cancelOrder(directory: string): void {
  rmSync(join(directory, cancelTokenName), { force: true })
}

/** The temporary files of an order that may still be there; some where its process was killed. */
export function readParts(directory: string): Part[] {
  try {
    const lines = readFileSync(join(directory, partsName), 'utf8').split('\n')
    // The last one was not written where it has no end, and what it names not made.
    return lines.slice(0, -1).map((line) => JSON.parse(line) as Part)
  } catch {
    return []
  }
}

interface FileSource extends Endpoint {
  readonly dataDir: string
  readonly environment?: Environment | undefined
}

/** Writes the order of a process for files (`worker.ts`) into its directory; returns the command that carries it out. */
export type FileWork = (
  directory: string,
  order: Pick<FileOrder, 'taskId' | 'runAs' | 'copy' | 'fetch' | 'stdin'>,
) => string[]

export function fileWork({ environment, ...where }: FileSource): FileWork {
  return (directory, order) => {
    const stored: FileOrder = { ...where, environment: proxyVariables(environment), ...order }
    const write = (file: string, text: string) => writeFileSync(join(directory, file), text, { mode: 0o600 })
    write(orderName, JSON.stringify(stored))
    write(reportName, '{}'.padEnd(reportBytes))
    write(partsName, '')
    write(cancelTokenName, '')
    return ownCommand('__copy', directory)
  }
}

/**
 * Removes what temporary files an order has left whose process was killed: by a process of whoever made them, as what lies in a
 * directory of another user is nothing to touch as root. Never rejects.
 */
export async function sweepParts(directory: string, log: Log): Promise<void> {
  const parts = readParts(directory)
  if (parts.length === 0) return
  const { file, argv } = ownProcess('__copy', directory, 'clean')
  await run(file, argv, { timeout: sweepPatience, killSignal: 'SIGKILL' }).catch((error: unknown) =>
    log('WARN', 'temporary files of a copy may be left', {
      parts: parts.map(({ path, name }) => `${path}/${name}`),
      error: String(error),
    }),
  )
}
