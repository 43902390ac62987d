import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliDecompressSync } from 'node:zlib'

const root = fileURLToPath(new URL('../../../../', import.meta.url))

/**
 * The server of commit 97c106f5, whose newest schema is 8; answers its program, for `startServerProcess`. It was bundled by esbuild from
 * test/fixtures/server-process.ts of that commit (`--bundle --minify-syntax --minify-whitespace --format=esm --platform=node
 * --packages=external --alias:#fault-point=./src/core/fault-point.ts`), and compressed by brotli.
 */
export function formerServer(teardown: (end: () => void) => void): string {
  const directory = mkdtempSync(join(tmpdir(), 'rsm-former-'))
  teardown(() => rmSync(directory, { recursive: true, force: true }))
  mkdirSync(join(directory, 'dist'))
  // What it reads beside itself says nothing of its version.
  for (const name of ['package.json', 'oclif.manifest.json', 'packaging', 'docs', 'node_modules'])
    symlinkSync(join(root, name), join(directory, name))
  const program = join(directory, 'dist/server-process.js')
  const bundle = readFileSync(join(root, 'test/fixtures/schema-8/server-process.js.br'))
  writeFileSync(program, brotliDecompressSync(bundle))
  return program
}
