import { rm } from 'node:fs/promises'
import { isDiskFull } from '../../disk/durable.ts'
import { writeExecutable } from '../../disk/new-release.ts'
import { openConnection, reasonOf } from '../../net/connect.ts'
import { openRequests } from '../../net/request.ts'
import { receive } from '../files/receive.ts'
import { readIdentity } from '../link/identity.ts'
import type { UpgradeOrder } from './order.ts'

/** Bytes. The release signature does not cover the size; an executable has 120 MB. */
const maxBytes = 1024 ** 3

export interface Wanted {
  /** Name under `/dl`. */
  readonly name: string
  readonly size: number
  readonly sha256: string
}

/**
 * Downloads an executable over the agent's connection to the server, resuming after an interruption. Rejects
 * with a sentence; an incomplete or wrong file is removed.
 */
export async function download(order: UpgradeOrder, wanted: Wanted, path: string): Promise<void> {
  const { name, size, sha256 } = wanted
  if (size > maxBytes) throw new Error(`${name} has ${size} bytes: more than 1 GiB, the limit`)
  const connection = openConnection(order)
  const send = openRequests(connection, (error) => new Error(reasonOf(error)))
  const absent = 'it has no such file, or does not use TLS'
  // The server reserves slots for agents that send their token; the download itself needs none.
  const identity = await readIdentity(order.dataDir).catch(() => null)
  const token = identity?.registration?.token
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const source = { path: `/dl/${name}`, headers, name, size, absent, timeout: order.timeout }
  try {
    const found = await writeExecutable(receive(send, source), path, 0o700)
    if (found !== sha256) throw new Error(`the received data has sha256 ${found}, not ${sha256} as signed`)
  } catch (error) {
    await rm(path, { force: true })
    if (isDiskFull(error)) throw new Error(`no room for ${size} bytes in ${path}`, { cause: error })
    throw error
  } finally {
    connection.agent.destroy()
  }
}
