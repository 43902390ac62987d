import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { ownFile } from '../../../disk/own-files.ts'
import { type UnchangingFile, unchangingFile } from '../../../disk/unchanging-file.ts'
import { keptFiles } from '../kept-files.ts'

/** What the build leaves in dist/web, by name. */
const mediaTypes: Record<string, string> = {
  'main.js': 'text/javascript; charset=utf-8',
  'main.css': 'text/css; charset=utf-8',
  'icon.svg': 'image/svg+xml',
}

/** A file as it is, and as browsers would rather have it. */
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

/** A file of the console by its name. */
export const consoleFile = keptFiles(mediaTypes, readBuilt)
