import { type UnchangingFile, unchangingFile } from '../../disk/digest.ts'
import { serverVersion } from '../../disk/own-release.ts'
import type { AppInstance } from '../http/app.ts'
import type { RoutedOperation } from '../http/openapi/document.ts'
import { operation } from '../http/operation.ts'
import { sendUnchanging } from '../http/served-files.ts'

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
      tag: 'server',
      summary: 'This document: OpenAPI 3.1',
      allow: { open: true },
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
