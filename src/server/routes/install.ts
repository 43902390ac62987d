import { createReadStream } from 'node:fs'
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { RsmError } from '../../core/errors.ts'
import { sourceOf } from '../access/client-address.ts'
import { createDownloadSlots } from '../agents/releases/download-slots.ts'
import type { HandedFile } from '../agents/releases/releases.ts'
import type { AppInstance } from '../http/app.ts'
import { bearer } from '../http/auth.ts'
import { operation } from '../http/operation.ts'
import { rangeOf, sendUnchanging } from '../http/served-files.ts'
import type { RouteDependencies } from './dependencies.ts'

/** Concurrent downloads, in total and per network: more would starve the agents' connections. */
const maxDownloads = 24
const maxPerNetwork = 16
/** Further slots, in total and per agent, for agents that send their token. */
const maxAgentDownloads = 8
const maxPerAgent = 2
/** Milliseconds without progress after which the download of a stalled client is aborted. */
const stalledAfter = 30_000
/** Seconds after which a client without a slot may retry. */
const askAgainAfter = 10

const allow = { open: true } as const
const tag = 'server' as const

/** Network of a client, because it may have many addresses: a /24, or a /64 of IPv6. */
const networkOf = (address: string): string => sourceOf(address).replace(/\.\d+$/, '.0/24')

/** Files for hosts without rsm: they hold no secrets and require no token. */
export function installRoutes(app: AppInstance, { context, credentials }: RouteDependencies): void {
  const clock = { monotonic: () => context.clock.monotonic() }
  const slots = createDownloadSlots({ max: maxDownloads, maxPerKey: maxPerNetwork, clock })
  const agentSlots = createDownloadSlots({ max: maxAgentDownloads, maxPerKey: maxPerAgent, clock })

  async function agentOf(request: FastifyRequest): Promise<string | null> {
    const token = bearer(request.headers.authorization)
    // A token is optional here, so an invalid one is not refused.
    const caller =
      token === undefined ? undefined : await Promise.resolve(credentials(token)).catch(() => undefined)
    return caller?.type === 'agent' ? caller.agentId : null
  }

  function check(request: FastifyRequest): void {
    if (context.handedOut.mayGoTo(request.raw)) return
    throw new RsmError(
      'not_found',
      'This server speaks no TLS, so downloads could be tampered with; see --tls-self-signed',
    )
  }

  function send(
    request: FastifyRequest,
    reply: FastifyReply,
    { path, sha256, size }: HandedFile,
    agentId: string | null,
  ): FastifyReply {
    const etag = `"${sha256}"`
    reply.headers({ 'accept-ranges': 'bytes', 'cache-control': 'no-cache', etag })
    reply.type('application/octet-stream')
    const condition = request.headers['if-range']
    const range = condition === undefined || condition === etag ? rangeOf(request.headers.range, size) : null
    if (range === 'unsatisfiable')
      return reply.code(416).header('content-range', `bytes */${size}`).send(Readable.from([]))
    const { first, last } = range ?? { first: 0, last: size - 1 }
    if (range !== null) reply.code(206).header('content-range', `bytes ${first}-${last}/${size}`)
    reply.header('content-length', last - first + 1)
    if (request.method === 'HEAD') return reply.send(Readable.from([]))
    const file = createReadStream(path, { start: first, end: last })
    const download = { bytes: () => file.bytesRead, cut: () => reply.raw.destroy() }
    const free =
      (agentId === null ? null : agentSlots.take(agentId, download)) ??
      slots.take(networkOf(request.client), download)
    if (free === null) {
      file.destroy()
      for (const name of ['content-length', 'content-range', 'accept-ranges', 'etag'])
        reply.removeHeader(name)
      reply.type('application/json; charset=utf-8')
      throw new RsmError(
        'unavailable',
        `all downloads are in use (at most ${maxDownloads}, and ${maxPerNetwork} per network); try again later`,
        { retryAfter: askAgainAfter },
      )
    }
    file.once('close', free)
    reply.raw.once('close', () => file.destroy())
    if (reply.raw.destroyed) file.destroy()
    reply.raw.setTimeout(stalledAfter, () => reply.raw.destroy())
    return reply.send(file)
  }

  app.get(
    '/install.sh',
    operation({
      id: 'getInstallScript',
      tag,
      summary: 'The script that installs rsm on a host',
      allow,
      unchanging: true,
      media: { 'text/x-shellscript': { holds: 'The script', example: '#!/bin/sh' } },
      errors: ['not_found'],
    }),
    async (request, reply) => {
      check(request)
      return sendUnchanging(request, reply, context.handedOut.installer)
    },
  )
  app.get(
    '/dl/SHA256SUMS',
    operation({
      id: 'getReleaseSums',
      tag,
      summary: 'SHA-256 of the executables under /dl',
      allow,
      media: { 'text/plain': { holds: 'One line per file, in the format of sha256sum', example: '' } },
      errors: ['not_found'],
    }),
    async (request, reply) => {
      check(request)
      return reply.type('text/plain; charset=utf-8').send(await context.handedOut.releases.sums())
    },
  )
  app.get(
    '/dl/:file',
    operation({
      id: 'getRelease',
      tag,
      summary: 'An executable of rsm: rsm-linux-x64, rsm-linux-arm64, or its .xz',
      allow,
      media: {
        'application/octet-stream': {
          holds: 'The executable, or the part requested by Range',
          example: '\u007fELF',
        },
      },
      headers: { Range: 'One byte range; for several, the answer is the whole file' },
      errors: ['not_found', 'unavailable'],
    }),
    async (request, reply) => {
      check(request)
      const { file } = request.params as { file: string }
      const found = await context.handedOut.releases.find(file)
      return send(request, reply, found, await agentOf(request))
    },
  )
}
