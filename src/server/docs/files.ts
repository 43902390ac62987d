import { readFile } from 'node:fs/promises'
import { type UnchangingFile, unchangingFile } from '../http/unchanging-file.ts'
import { html, startScript } from './page.ts'

const css = 'text/css; charset=utf-8'
const javascript = 'text/javascript; charset=utf-8'

/** The files of Swagger UI that the page takes, of those that @fastify/swagger-ui ships. */
const shipped: Record<string, string> = {
  'swagger-ui.css': css,
  'swagger-ui-bundle.js': javascript,
  'favicon-32x32.png': 'image/png',
}

export const page: UnchangingFile = unchangingFile('text/html; charset=utf-8', Buffer.from(html))
const start: UnchangingFile = unchangingFile(javascript, Buffer.from(startScript))

const read = new Map<string, Promise<UnchangingFile>>()

async function readShipped(name: string, mediaType: string): Promise<UnchangingFile> {
  // Resolved like an import, so that it is found wherever the package manager has put it.
  const home = import.meta.resolve('@fastify/swagger-ui/package.json')
  return unchangingFile(mediaType, await readFile(new URL(`static/${name}`, home)))
}

/** A file of the page by its name; undefined for one that the page does not take. Read at most once. */
export async function docsFile(name: string): Promise<UnchangingFile | undefined> {
  if (name === 'start.js') return start
  const mediaType = Object.hasOwn(shipped, name) ? shipped[name] : undefined
  if (mediaType === undefined) return undefined
  const known = read.get(name)
  if (known) return known
  const reading = readShipped(name, mediaType)
  read.set(name, reading)
  reading.catch(() => read.delete(name))
  return reading
}
