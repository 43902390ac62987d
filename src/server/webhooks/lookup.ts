import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { Semaphore } from '../../core/mutex.ts'
import { hostOf, type Judge } from './judge.ts'

/** An address that was judged: the socket goes there, whatever the name says a moment later. */
export interface JudgedAddress {
  readonly address: string
  readonly family: 4 | 6
}

/** Answers all addresses of a name. Errors: those of dns(3). */
export type Resolve = (
  host: string,
) => Promise<readonly { readonly address: string; readonly family: number }[]>

export const systemResolve: Resolve = (host) => lookup(host, { all: true })

/**
 * Names that are looked up at a time. The system does it in threads that files need, too, of which there are four: a name
 * service that never answers must not hold up what waits for the disk.
 */
const mostAtOnce = 2

/** Each webhook sends one at a time; beside that there are tests. */
const mostWaiting = 200

export const lookups = new Semaphore(mostAtOnce)

async function resolved(resolve: Resolve, host: string, signal: AbortSignal): ReturnType<Resolve> {
  if (lookups.queueLength >= mostWaiting) throw new Error(`${mostWaiting} others wait for the same`)
  return lookups.run(() => resolve(host), signal)
}

/**
 * The addresses that a URL leads to, all of them judged. One that is refused refuses them all: which of them a client gets
 * is not for us to say. Throws an Error that says which, or that there is none. What waits to be looked up ends with `signal`.
 */
export async function judgedAddresses(
  { judge, resolve }: { readonly judge: Judge; readonly resolve: Resolve },
  url: URL,
  signal: AbortSignal,
): Promise<readonly JudgedAddress[]> {
  const host = hostOf(url)
  const found = isIP(host)
    ? [{ address: host, family: isIP(host) }]
    : await resolved(resolve, host, signal).catch((error: NodeJS.ErrnoException) => {
        throw new Error(`${host} cannot be looked up: ${error.code ?? error.message}`, { cause: error })
      })
  for (const { address } of found) {
    const fault = judge.addressFault(url, address)
    if (fault !== null) throw new Error(`the URL ${fault}`)
  }
  if (found.length === 0) throw new Error(`${host} has no address`)
  return found as readonly JudgedAddress[]
}
