import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const sea = process.getBuiltinModule('node:sea')

/** Whether rsm is a single executable that contains Node and all its files. */
export const isSingleFile: boolean = sea.isSea()

let root: string | undefined

/** Searches upward, because this file is at a different depth in each bundle. */
function packageRoot(): string {
  let directory: string = import.meta.dirname
  while (!existsSync(join(directory, 'package.json')) && directory !== '/') directory = dirname(directory)
  return directory
}

/** Path of a file of rsm, by its path within the package; useless in a single executable. */
export function ownPath(path: string): string {
  root ??= packageRoot()
  return join(root, path)
}

/** Whether rsm was built with this file. */
export function hasOwnFile(path: string): boolean {
  if (!isSingleFile) return existsSync(ownPath(path))
  try {
    return (sea.getRawAsset(path) as ArrayBuffer).byteLength > 0
  } catch {
    return false
  }
}

/** A file shipped with rsm, by its path within the package: `package.json`, `dist/web/main.js`. */
export function ownFile(path: string): Buffer {
  return isSingleFile ? Buffer.from(sea.getRawAsset(path) as ArrayBuffer) : readFileSync(ownPath(path))
}

export const ownText = (path: string): string => ownFile(path).toString('utf8')

export const ownPackage = (): OwnPackage => JSON.parse(ownText('package.json')) as OwnPackage

export interface OwnPackage {
  readonly name: string
  readonly version: string
  /** Only in builds that accept upgrades: base64 of the 32 bytes of an Ed25519 public key. */
  readonly releaseKey?: string
  readonly oclif: { readonly topics: Record<string, { readonly description: string } | undefined> }
}

/** The single executable, by /proc as its path may be another release's by now; else undefined. */
export function ownExecutable(): string | undefined {
  return isSingleFile ? '/proc/self/exe' : undefined
}

/** A file that the server offers; its bytes never change during the life of the process. */
export interface UnchangingFile {
  mediaType: string
  bytes: Buffer
  /** RFC 9110 §8.8.3: with quotes. */
  etag: string
}

export function unchangingFile(mediaType: string, bytes: Buffer): UnchangingFile {
  const { createHash } = process.getBuiltinModule('node:crypto')
  return { mediaType, bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url')}"` }
}
