import { sha256 } from '../../../disk/digest.ts'
import { ownText } from '../../../disk/own-files.ts'
import { type UnchangingFile, unchangingFile } from '../../../disk/unchanging-file.ts'

/** `/install.sh`: the same bytes for whoever asks. */
export interface Installer extends UnchangingFile {
  readonly sha256: string
}

export function readInstaller(): Installer {
  const text = ownText('packaging/install.sh')
  return { ...unchangingFile('text/x-shellscript; charset=utf-8', Buffer.from(text)), sha256: sha256(text) }
}
