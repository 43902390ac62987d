import { ownFile, type UnchangingFile, unchangingFile } from '../../disk/own-files.ts'
import { keptFiles } from './served-files.ts'

export const html = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>rsm API</title>
    <link rel="stylesheet" href="docs/swagger-ui.css">
    <link rel="icon" type="image/png" href="docs/favicon-32x32.png">
  </head>
  <body>
    <div id="swagger-ui"></div>
    <script src="docs/swagger-ui-bundle.js"></script>
    <script src="docs/start.js"></script>
  </body>
</html>
`

/** A separate file, because the page's policy forbids inline scripts. No validator: it would be a third party. */
export const startScript = `SwaggerUIBundle({
  url: 'api/openapi.json',
  dom_id: '#swagger-ui',
  deepLinking: true,
  validatorUrl: null,
  filter: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  displayOperationId: true,
  displayRequestDuration: true,
  tryItOutEnabled: false,
})
`

/** Allows only content of this server. Swagger UI's icons are `data:` URLs in its style sheet. */
export const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const css = 'text/css; charset=utf-8'
const javascript = 'text/javascript; charset=utf-8'

/** Files of Swagger UI that the page uses; the build copies them from @fastify/swagger-ui to dist/docs. */
const shipped: Record<string, string> = {
  'swagger-ui.css': css,
  'swagger-ui-bundle.js': javascript,
  'favicon-32x32.png': 'image/png',
}

export const page: UnchangingFile = unchangingFile('text/html; charset=utf-8', Buffer.from(html))
const start: UnchangingFile = unchangingFile(javascript, Buffer.from(startScript))

async function readShipped(name: string, mediaType: string): Promise<UnchangingFile> {
  return unchangingFile(mediaType, ownFile(`dist/docs/${name}`))
}

const shippedFile = keptFiles(shipped, readShipped)

export async function docsFile(name: string): Promise<UnchangingFile | undefined> {
  return name === 'start.js' ? start : shippedFile(name)
}
