import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { hostOf, type Judge } from './judge.ts'

/** An address that was judged: the socket goes there, whatever the name says a moment later. */
export interface JudgedAddress {
  readonly address: string
  readonly family: 4 | 6
}

/**
 * Names that are looked up at a time. The system does it in threads that files need, too, of which there are four: a name
 * service that never answers must not hold up what waits for the disk.
 */
const mostAtOnce = 2

let free = mostAtOnce
const waiting: (() => void)[] = []

async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  if (free > 0) free--
  else await new Promise<void>((resolve) => waiting.push(resolve))
  try {
    return await work()
  } finally {
    const next = waiting.shift()
    if (next) next()
    else free++
  }
}

/**
 * The addresses that a URL leads to, all of them judged. One that is refused refuses them all: which of them a client gets
 * is not for us to say. Throws an Error that says which, or that there is none.
 */
export async function judgedAddresses(judge: Judge, url: URL): Promise<readonly JudgedAddress[]> {
  const host = hostOf(url)
  const found = isIP(host)
    ? [{ address: host, family: isIP(host) }]
    : await inTurn(() => lookup(host, { all: true })).catch((error: NodeJS.ErrnoException) => {
        throw new Error(`${host} can not be looked up: ${error.code ?? error.message}`)
      })
  for (const { address } of found) {
    const fault = judge.addressFault(url, address)
    if (fault !== null) throw new Error(`the URL ${fault}`)
  }
  if (found.length === 0) throw new Error(`${host} has no address`)
  return found as JudgedAddress[]
}
