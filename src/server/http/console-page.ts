import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { ownFile, type UnchangingFile, unchangingFile } from '../../disk/own-files.ts'
import { keptFiles } from './served-files.ts'

/** Page of the browser console; `nonce` is new in every answer. */
export const html = (nonce: string): string => `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>rsm</title>
    <link rel="icon" type="image/svg+xml" href="console/icon.svg">
    <link rel="stylesheet" href="console/main.css">
    <script type="module" src="console/main.js" nonce="${nonce}"></script>
  </head>
  <body>
    <div id="app"></div>
    <noscript>The console needs JavaScript. The command line and the API do not.</noscript>
  </body>
</html>
`

/**
 * Allows only content of this server, and no text that becomes markup (S06, S08). The nonce is for style sheets of
 * the terminal; scripts come from files alone.
 */
export const contentSecurityPolicy = (nonce: string): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')

/** Media types of the files that the build writes to dist/web. */
const mediaTypes: Record<string, string> = {
  'main.js': 'text/javascript; charset=utf-8',
  'main.css': 'text/css; charset=utf-8',
  'icon.svg': 'image/svg+xml',
}

interface ConsoleFile {
  plain: UnchangingFile
  gzipped: UnchangingFile
}

async function readBuilt(name: string, mediaType: string): Promise<ConsoleFile> {
  const bytes = ownFile(`dist/web/${name}`)
  return {
    plain: unchangingFile(mediaType, bytes),
    gzipped: unchangingFile(mediaType, await promisify(gzip)(bytes)),
  }
}

export const consoleFile = keptFiles(mediaTypes, readBuilt)
