import { realpathSync, statSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { partsOf } from '../../client/upload.ts'
import { RsmError } from '../../core/errors.ts'
import { nameOf as textOf } from '../../disk/files/byte-names.ts'
import { Failure } from '../../disk/files/failure.ts'
import { OpenDirectory } from '../../disk/files/open-directory.ts'
import { type TreeRoot, topName, treeOf } from '../../disk/files/pack-tree.ts'
import { nameOf } from './copy-order.ts'
import { explained, type LocalSource } from './source.ts'

/** Beside what else goes into the tree. */
interface Named {
  readonly source: string
  /** Empty: what is in it goes to the top; `topName`: and it is the top. */
  readonly name: string
}

/** Errors: `usage`. */
function rootOf({ source, name }: Named): TreeRoot {
  // What was named is meant, also where it is a symlink; those below it are copied as such.
  const path = textOf(realpathSync.native(source, 'buffer'))
  try {
    return name === '' || name === topName
      ? { directory: OpenDirectory.open(path), name: null, tarName: name }
      : { directory: OpenDirectory.open(dirname(path)), name: basename(path), tarName: name }
  } catch (error) {
    throw explained(error)
  }
}

/**
 * Directories and files as one tree, made while it is sent; a directory alone is the tree itself, whose own mode and owner count if
 * `hasTop`. Errors: `usage` where two would have one name, and as it is read where something in it can't be read, is none of file, directory and symlink, or changes meanwhile.
 */
export function treeSource(sources: readonly string[], hasTop: boolean): LocalSource {
  const alone = hasTop ? topName : ''
  const named = sources.map((source) => ({ source, name: sources.length === 1 ? alone : nameOf(source) }))
  const twice = named.find(
    ({ name }, at) => name !== '' && named.some((other, i) => i < at && other.name === name),
  )
  if (twice !== undefined) throw new RsmError('usage', `two sources have the name ${twice.name}`)
  for (const { source, name } of named)
    if ((name === '' || name === topName) && !statSync(source).isDirectory())
      throw new RsmError('usage', `${source} is not a directory`)
  const roots = named.map(rootOf)
  const changedAt = (path: string) => {
    throw new Failure(`${path} changed while it was read; run it again`)
  }
  async function* bytes(): AsyncGenerator<Buffer> {
    try {
      yield* treeOf(roots, { follow: false, changedAt })
    } catch (error) {
      throw explained(error)
    }
  }
  return {
    name: sources.join(', '),
    fileName: sources.map((source) => basename(resolve(source))).join(', '),
    size: null,
    parts: () => partsOf(bytes()),
    close: async () => {
      for (const { directory } of roots.splice(0)) directory.close()
    },
  }
}
