import { open, rm, stat } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { isDiskFull } from '../../disk/durable.ts'
import { openConnection, reasonOf } from '../../net/connect.ts'
import { openRequests, type Send } from '../../net/request.ts'
import { sha256Of } from './follow.ts'
import type { UpgradeOrder } from './order.ts'

/** Milliseconds between two attempts; the server may ask for more. */
const betweenAttempts = 2_000
const longestPause = 30_000
/** Bytes. The size is the server's word, which nobody else has signed; an executable has 120 MB. */
const mostBytes = 1024 ** 3

/** What asking again does not mend. */
class Refused extends Error {}

export interface Wanted {
  /** Under `/dl`. */
  readonly name: string
  readonly size: number
  readonly sha256: string
}

/** Bytes of a file; 0 where there is none. */
const sizeOf = (path: string) =>
  stat(path).then(
    ({ size }) => size,
    () => 0,
  )

/** Takes what is still missing. Answers how long to wait before the next attempt, null once all is there. */
async function attempt(send: Send, { name, size }: Wanted, path: string): Promise<number | null> {
  const from = await sizeOf(path)
  if (from >= size) return null
  const headers: Record<string, string> = from > 0 ? { range: `bytes=${from}-` } : {}
  const { status, headers: said, body } = await send({ method: 'GET', path: `/dl/${name}`, headers })
  if (status === 503) {
    body.destroy()
    const asked = Number(said['retry-after']) * 1000
    return asked > 0 ? Math.min(longestPause, asked) : betweenAttempts
  }
  if (status !== 200 && status !== 206) {
    body.destroy()
    const why = status === 404 ? ': it hands out no such file, or speaks no TLS' : ''
    throw new Refused(`the server answered ${status} to /dl/${name}${why}`)
  }
  const file = await open(path, status === 206 ? 'a' : 'w', 0o700)
  try {
    let written = status === 206 ? from : 0
    for await (const piece of body as AsyncIterable<Buffer>) {
      written += piece.length
      if (written > size) throw new Refused(`the server sends more than the ${size} bytes of ${name}`)
      await file.writeFile(piece)
    }
    await file.sync()
  } finally {
    await file.close()
  }
  return (await sizeOf(path)) >= size ? null : betweenAttempts
}

/**
 * Fetches an executable from the server, by the agent's own way to it, and goes on where an attempt was cut. Rejects with a
 * sentence; what is not whole or not as wanted is gone then.
 */
export async function download(order: UpgradeOrder, wanted: Wanted, path: string): Promise<void> {
  if (wanted.size > mostBytes)
    throw new Error(
      `the server says that ${wanted.name} has ${wanted.size} bytes: more than 1 GiB is not taken`,
    )
  const connection = openConnection(order)
  const send = openRequests(connection, (error) => new Error(reasonOf(error)))
  const deadline = order.timeout > 0 ? performance.now() + order.timeout * 1000 : Number.POSITIVE_INFINITY
  try {
    for (;;) {
      let reason = 'its downloads are all taken'
      const wait = await attempt(send, wanted, path).catch((error: unknown) => {
        if (error instanceof Refused) throw error
        if (isDiskFull(error))
          throw new Error(`no room for ${wanted.size} bytes in ${path}`, { cause: error })
        reason = error instanceof Error ? error.message : String(error)
        return betweenAttempts
      })
      if (wait === null) break
      if (performance.now() + wait > deadline) throw new Error(`the download was not done in time: ${reason}`)
      await pause(wait)
    }
    const found = await sha256Of(path)
    if (found !== wanted.sha256)
      throw new Error(`what the server sent has the sha256 ${found}, not ${wanted.sha256} as was signed`)
  } catch (error) {
    await rm(path, { force: true })
    throw error
  } finally {
    connection.agent.destroy()
  }
}
