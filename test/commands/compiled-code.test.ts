import { chmodSync, chownSync, mkdirSync, rmdirSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import test from 'ava'
import { temporaryDirectory } from '../fixtures/rsm.ts'

const { isOwn, trustedDirectory } = createRequire(import.meta.url)(resolve('bin/trusted-directory.js')) as {
  isOwn: (status: { uid: number; mode: number }) => boolean
  trustedDirectory: (directory: string) => string | null
}
const own = process.getuid?.() ?? 0
const place = (home: string) => join(home, '.cache/rsm/compile')

test('compiled code is cached in a directory of the user, by its real path', (t) => {
  const home = temporaryDirectory(t)
  t.is(trustedDirectory(place(home)), place(home))
  mkdirSync(place(home), { recursive: true, mode: 0o700 })
  t.is(trustedDirectory(place(home)), place(home))
  symlinkSync(join(home, '.cache'), join(home, 'linked'))
  t.is(trustedDirectory(join(home, 'linked/rsm/compile')), place(home))
})

for (const [what, spoil] of [
  ['everyone may write to the directory', (compile: string) => chmodSync(compile, 0o777)],
  ['the group may write to the directory', (compile: string) => chmodSync(compile, 0o770)],
  ['everyone may write to the parent directory', (compile: string) => chmodSync(dirname(compile), 0o777)],
  [
    'a link leads to a parent directory that everyone may write to',
    (compile: string) => {
      const elsewhere = resolve(compile, '../../../elsewhere')
      mkdirSync(join(elsewhere, 'compile'), { recursive: true, mode: 0o700 })
      chmodSync(elsewhere, 0o777)
      rmdirSync(compile)
      symlinkSync(join(elsewhere, 'compile'), compile)
    },
  ],
] as const)
  test(`compiled code is neither read nor cached if ${what}`, (t) => {
    const compile = place(temporaryDirectory(t))
    mkdirSync(compile, { recursive: true, mode: 0o700 })
    spoil(compile)
    t.is(trustedDirectory(compile), null)
  })

const asRoot = own === 0 ? test : test.skip
asRoot("root neither reads nor caches compiled code in another user's home (needs root)", (t) => {
  const home = temporaryDirectory(t)
  chownSync(home, 65_534, 65_534)
  t.is(trustedDirectory(place(home)), null)
  mkdirSync(place(home), { recursive: true, mode: 0o700 })
  t.is(trustedDirectory(place(home)), null)
})

test('a file of compiled code is used only if its reader owns it and alone may write to it', (t) => {
  for (const [uid, mode, expected] of [
    [own, 0o600, true],
    [own, 0o644, true],
    [own, 0o664, false],
    [own, 0o602, false],
    [own + 1, 0o600, false],
  ] as const)
    t.is(isOwn({ uid, mode }), expected, `${uid} ${mode.toString(8)}`)
})
