import { RsmError } from '../../core/errors.ts'
import type { AppInstance } from '../http/app.ts'
import { operation } from '../http/operation.ts'
import { sendUnchanging } from '../http/served-files.ts'

const allow = { open: true } as const
const tag = 'server' as const

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
      const { contentSecurityPolicy, page } = await loaded()
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
      const { docsFile } = await loaded()
      const file = await docsFile(name)
      if (!file) throw new RsmError('not_found', `The page has no file ${name}`)
      return sendUnchanging(request, reply, file)
    },
  )
}

/** Loaded at the first request, so that it adds nothing to the server's start time. */
const loaded = () => import('../http/docs-page.ts')
