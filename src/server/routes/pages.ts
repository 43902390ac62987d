import { randomBytes } from 'node:crypto'
import { RsmError } from '../../core/errors.ts'
import { type UnchangingFile, unchangingFile } from '../../disk/own-files.ts'
import { serverVersion } from '../../disk/own-release.ts'
import type { AppInstance } from '../http/app.ts'
import type { RoutedOperation } from '../http/openapi/document.ts'
import { operation } from '../http/operation.ts'
import { sendUnchanging } from '../http/served-files.ts'

const allow = { open: true } as const
const tag = 'server' as const

/**
 * The API's own document, of all operations registered after this one. It is generated at the first request, so that
 * it adds nothing to the start time. It is open, because it holds no secrets and a browser sends no token for a page.
 */
export function openapiRoutes(app: AppInstance): void {
  const operations: RoutedOperation[] = []
  app.addHook('onRoute', ({ method, url, config }) => {
    // Fastify adds HEAD to every GET.
    if (config?.operation && typeof method === 'string' && method !== 'HEAD')
      operations.push({ method, url, operation: config.operation })
  })
  let file: Promise<UnchangingFile> | undefined
  const written = async () => {
    const { apiDocument } = await import('../http/openapi/document.ts')
    const text = JSON.stringify(apiDocument(operations, serverVersion()))
    return unchangingFile('application/json; charset=utf-8', Buffer.from(text))
  }
  app.get(
    '/api/openapi.json',
    operation({
      id: 'getOpenapi',
      tag,
      summary: 'This document: OpenAPI 3.1',
      allow,
      unchanging: true,
      media: {
        'application/json': {
          holds: 'An OpenAPI 3.1 document, without the envelope',
          example: { openapi: '3.1.0', info: { title: 'rsm', version: '1.0.0' }, paths: {} },
        },
      },
    }),
    async (request, reply) => sendUnchanging(request, reply, await (file ??= written())),
  )
}

export function docsRoutes(app: AppInstance): void {
  app.get(
    '/docs',
    operation({
      id: 'getDocs',
      tag,
      summary: 'This document as an interactive page',
      allow,
      unchanging: true,
      media: { 'text/html': { holds: 'The page', example: '<!doctype html>' } },
    }),
    async (request, reply) => {
      const { contentSecurityPolicy, page } = await docsPage()
      reply.headers({ 'content-security-policy': contentSecurityPolicy, 'referrer-policy': 'no-referrer' })
      return sendUnchanging(request, reply, page)
    },
  )
  app.get(
    '/docs/:file',
    operation({
      id: 'getDocsFile',
      tag,
      summary: 'A file of that page',
      allow,
      unchanging: true,
      media: {
        'text/javascript': { holds: 'A script', example: 'SwaggerUIBundle({})' },
        'text/css': 'A style sheet',
        'image/png': 'A picture',
      },
    }),
    async (request, reply) => {
      const { file: name } = request.params as { file: string }
      const { docsFile } = await docsPage()
      const file = await docsFile(name)
      if (!file) throw new RsmError('not_found', `The page has no file ${name}`)
      return sendUnchanging(request, reply, file)
    },
  )
}

/** Loaded at the first request, so that it adds nothing to the server's start time. */
const docsPage = () => import('../http/docs-page.ts')

const takesGzip = /(?:^|,)\s*(?:gzip|\*)\s*(?:;(?!\s*q=0(?:\.0*)?\s*(?:,|$))|,|$)/

/** The browser console. The page holds no secrets: it loads all data from the API. */
export function consoleRoutes(app: AppInstance): void {
  app.get(
    '/',
    operation({
      id: 'getConsole',
      tag,
      summary: 'The browser console',
      allow,
      media: { 'text/html': { holds: 'The page', example: '<!doctype html>' } },
    }),
    async (_request, reply) => {
      const { contentSecurityPolicy, html } = await import('../http/console-page.ts')
      const nonce = randomBytes(18).toString('base64url')
      reply.headers({
        'content-security-policy': contentSecurityPolicy(nonce),
        'cross-origin-opener-policy': 'same-origin',
      })
      return reply.type('text/html; charset=utf-8').send(html(nonce))
    },
  )
  app.get(
    '/console/:file',
    operation({
      id: 'getConsoleFile',
      tag,
      summary: 'A file of the console',
      allow,
      unchanging: true,
      media: {
        'text/javascript': { holds: 'A script', example: 'document.title' },
        'text/css': 'A style sheet',
        'image/svg+xml': 'A picture',
      },
    }),
    async (request, reply) => {
      const { file: name } = request.params as { file: string }
      const { consoleFile } = await import('../http/console-page.ts')
      const file = await consoleFile(name)
      if (!file) throw new RsmError('not_found', `The console has no file ${name}`)
      reply.header('vary', 'accept-encoding')
      if (!takesGzip.test(request.headers['accept-encoding'] ?? ''))
        return sendUnchanging(request, reply, file.plain)
      return sendUnchanging(request, reply.header('content-encoding', 'gzip'), file.gzipped)
    },
  )
}
