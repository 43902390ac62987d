import { execFile } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { CopyOrder, FetchOrder, FileOfTask } from '../../core/protocol/messages.ts'
import type { Endpoint } from '../../net/connect.ts'
import { type Environment, proxyVariables } from '../../net/proxy.ts'
import type { Log } from '../log.ts'
import type { Account } from '../processes/account.ts'
import { ownCommand, ownProcess } from '../processes/programs.ts'

const orderName = 'order.json'
export const reportName = 'report'
export const partsName = 'parts'
export const cancelTokenName = 'leave'
/** Bytes reserved for a report from the start, so that a full disk does not lose it. */
export const reportBytes = 8192

/** Milliseconds for a sweep; a hung disk must not hold up a result. */
const sweepPatience = 20_000

const run = promisify(execFile)

/** The order of a file worker, in the directory of its execution. */
export interface FileOrder extends Endpoint {
  readonly taskId: string
  /** The agent's, with its token. */
  readonly dataDir: string
  readonly environment: Record<string, string>
  /** User that it switches to before it touches a file of this host; null for the agent's own. */
  readonly runAs: Pick<Account, 'name' | 'uid' | 'gid'> | null
  readonly copy?: CopyOrder
  readonly fetch?: FetchOrder
  /** A script's stdin, delivered into this directory. */
  readonly stdin?: FileOfTask
}

/** A temporary file of an order, with device and inode of its directory, because that may be moved. */
export interface Part {
  readonly path: string
  readonly dev: number
  readonly ino: number
  readonly name: string
}

export interface FileReport {
  readonly changed?: boolean
  readonly error?: string
}

export const readOrder = (directory: string): FileOrder =>
  JSON.parse(readFileSync(join(directory, orderName), 'utf8')) as FileOrder

/** Empty without a report. */
export function reportOf(directory: string): FileReport {
  try {
    return JSON.parse(readFileSync(join(directory, reportName), 'utf8')) as FileReport
  } catch {
    return {}
  }
}

/**
 * Cancels an order: anything not in its final place by then stays out (contract §13). Needs no disk space,
 * and the next agent sees it too.
 */
export function cancelOrder(directory: string): void {
  rmSync(join(directory, cancelTokenName), { force: true })
}

/** Temporary files of an order that may still exist, if its worker was killed. */
export function readParts(directory: string): Part[] {
  try {
    const lines = readFileSync(join(directory, partsName), 'utf8').split('\n')
    // A last line without an end was cut off, and its file never created.
    return lines.slice(0, -1).map((line) => JSON.parse(line) as Part)
  } catch {
    return []
  }
}

interface FileSource extends Endpoint {
  readonly dataDir: string
  readonly environment?: Environment | undefined
}

/** Writes the order of a file worker (`worker.ts`) into its directory; returns the command that runs it. */
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
 * Removes temporary files of a killed worker. Uses a process of the same user, because root must not touch
 * files in another user's directories. Never rejects.
 */
export async function sweepParts(directory: string, log: Log): Promise<void> {
  const parts = readParts(directory)
  if (parts.length === 0) return
  const { file, argv } = ownProcess('__copy', directory, 'clean')
  await run(file, argv, { timeout: sweepPatience, killSignal: 'SIGKILL' }).catch((error: unknown) =>
    log('WARN', 'could not remove the temporary files of a copy', {
      parts: parts.map(({ path, name }) => `${path}/${name}`),
      error: String(error),
    }),
  )
}
