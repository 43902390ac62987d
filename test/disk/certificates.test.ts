import test from 'ava'
import { readCertificates } from '../../src/disk/certificates.ts'
import { authorities, damaged } from '../helpers/servers/authorities.ts'

test('a certificate file is refused with the number and line of the damaged certificate', (t) => {
  const { root, intermediate, key, file } = authorities(t)
  const lines = root.split('\n').length - 1
  const path = file('')
  const half = intermediate.slice(0, intermediate.length / 2)
  for (const [text, fault] of [
    [root + damaged, `certificate 2 (line ${lines + 1}) is damaged`],
    [`# ours\n${damaged}${root}`, 'certificate 1 (line 2) is damaged'],
    [root + half, `certificate 2 (line ${lines + 1}) is damaged`],
    [half + root, 'certificate 1 (line 1) is damaged'],
    [root + intermediate.replace('-----', '----'), 'half a certificate follows certificate 1 (line 1)'],
    [root.trim() + intermediate, 'certificate 1 (line 1) is damaged'],
    [root.replace('-----', '----'), 'half a certificate is at its start'],
    ['text', 'it holds no certificate in PEM'],
    [key, 'it holds no certificate in PEM'],
  ] as const) {
    file(text)
    const error = t.throws(() => readCertificates(path), { code: 'usage' })
    t.is(error?.message, `cannot read the certificates in ${path}: ${fault}`)
  }
  t.is(
    readCertificates(file(`# a\r\n${root}\n${key}\n${intermediate}# z`.replaceAll('\n', '\r\n'))).length,
    2,
  )
})
