import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'

/** Where a server is and how its certificate is trusted. */
export interface Endpoint {
  readonly url: string
  /** PEM file of certificates that are trusted beside the system's. */
  readonly caFile?: string | undefined
  /** SHA-256 of the one certificate that is trusted, instead of any authority. */
  readonly tlsFingerprint?: string | undefined
}

export interface Outgoing {
  readonly method: string
  /** Path with its query, from the base URL. */
  readonly path: string
  readonly headers: Record<string, string>
  readonly body?: string | undefined
  readonly signal?: AbortSignal | undefined
}

export interface Incoming {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Readable
}

/** One request; rejects with `unreachable` when no answer came (`lost` on its cause says that it may have arrived). */
export type Send = (request: Outgoing) => Promise<Incoming>
