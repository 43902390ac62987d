import { ownFile } from '../../../disk/own-files.ts'
import { type UnchangingFile, unchangingFile } from '../../../disk/unchanging-file.ts'
import { keptFiles } from '../kept-files.ts'
import { html, startScript } from './page.ts'

const css = 'text/css; charset=utf-8'
const javascript = 'text/javascript; charset=utf-8'

/** The files of Swagger UI that the page takes: the build copies them from @fastify/swagger-ui to dist/docs. */
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

/** A file of the page by its name; undefined for one that the page does not take. */
export async function docsFile(name: string): Promise<UnchangingFile | undefined> {
  return name === 'start.js' ? start : shippedFile(name)
}
