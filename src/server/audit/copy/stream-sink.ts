import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { firstError, RsmError } from '../../../core/errors.ts'
import { linesOf } from './head-of.ts'
import type { Sink } from './sink.ts'
import { syslogMessage } from './syslog-message.ts'
import type { AuditCopyTarget } from './target.ts'

type Remote = Extract<AuditCopyTarget, { host: string }>

/** Milliseconds: until the collector has answered, has read what it was sent, and has taken leave. */
const connectPatience = 10_000
const readPatience = 30_000
const leavePatience = 1_000
const keepAlive = 30_000
/** Syslog acknowledges nothing: after a lost connection all of the last minute is sent again. */
const settles = 60_000

/** With its length before it (RFC 6587 §3.4.1). */
function framed(line: Buffer): Buffer {
  const message = syslogMessage(line)
  return Buffer.concat([Buffer.from(`${message.length} `), message])
}

/** A collector that takes syslog over TCP or TLS. */
export function createStreamSink({ kind, host, port }: Remote, ca: string[] | undefined): Sink {
  let socket: Socket | null = null
  let lost = false
  let lastError = ''

  async function dial(): Promise<Socket> {
    const plain = connect({ host, port })
    const stream =
      kind === 'tcp'
        ? plain
        : (await import('node:tls')).connect({
            socket: plain,
            ca,
            allowPartialTrustChain: true,
            ...(/^[\d.]+$|:/.test(host) ? { host } : { servername: host, host }),
          })
    plain.on('error', (error) => stream.destroy(error))
    stream.on('error', (error) => {
      lastError = (firstError(error) as Error).message
    })
    const patience = AbortSignal.timeout(connectPatience)
    await once(stream, kind === 'tcp' ? 'connect' : 'secureConnect', { signal: patience }).catch(
      (error: Error) => {
        stream.destroy()
        plain.destroy()
        throw new RsmError(
          'unavailable',
          patience.aborted ? 'it does not answer' : (firstError(error) as Error).message,
          {
            cause: error,
          },
        )
      },
    )
    plain.setKeepAlive(true, keepAlive)
    // Nothing is read from it but its end.
    stream.on('end', () => stream.destroy())
    stream.on('close', () => {
      lost = true
      socket = null
    })
    stream.resume()
    return stream
  }

  return {
    settles,
    wasLost() {
      const was = lost
      lost = false
      return was
    },
    holds: async () => null,
    async write(lines) {
      socket ??= await dial()
      const stream = socket
      const bytes = Buffer.concat(linesOf(lines).map(framed))
      await new Promise<void>((resolve, reject) => {
        const ended = (why: string) => {
          clearTimeout(timer)
          stream.off('close', onClose)
          reject(new RsmError('unavailable', why))
        }
        const onClose = () => ended(`the connection was lost${lastError && `: ${lastError}`}`)
        const timer = setTimeout(() => {
          ended('it does not read what it is sent')
          stream.destroy()
        }, readPatience)
        stream.once('close', onClose)
        stream.write(bytes, (error) => {
          if (error) return
          clearTimeout(timer)
          stream.off('close', onClose)
          resolve()
        })
      })
    },
    async close() {
      const stream = socket
      if (stream === null) return false
      stream.end()
      // Its own end comes after it has read ours.
      const left = once(stream, 'close', { signal: AbortSignal.timeout(leavePatience) })
      const isTaken = await left.then(
        ([hadError]) => hadError !== true,
        () => false,
      )
      stream.destroy()
      return isTaken
    },
  }
}
