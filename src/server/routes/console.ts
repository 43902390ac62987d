import { randomBytes } from 'node:crypto'
import { RsmError } from '../../core/errors.ts'
import type { AppInstance } from '../http/app.ts'
import { operation } from '../http/operation.ts'
import { sendUnchanging } from '../http/served-files.ts'

const allow = { open: true } as const
const tag = 'server' as const
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
