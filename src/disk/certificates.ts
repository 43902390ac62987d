import { RsmError } from '../core/errors.ts'
import { readBoundedFile, whyUnreadable } from './named-files.ts'

/** Splits a text into its PEM blocks, each with the text after it; text before the first block comes first. */
export const blocksOf = (text: string): string[] =>
  text.split(/^(?=\uFEFF?-----BEGIN (?:(?:TRUSTED|X509) )?CERTIFICATE-----)/m)

/** Valid certificates of a text, one PEM block each, and faults. TLS silently stops at a fault. */
export function certificatesIn(text: string): { sound: string[]; faults: string[] } {
  const { X509Certificate } = process.getBuiltinModule('node:crypto')
  const [sound, faults]: [string[], string[]] = [[], []]
  let [line, count] = [1, 0]
  for (const block of blocksOf(text)) {
    const isBlock = /^\uFEFF?-----BEGIN (?:(?:TRUSTED|X509) )?CERTIFICATE-----/.test(block)
    if (isBlock) count++
    try {
      if (isBlock) void new X509Certificate(block)
      if (isBlock) sound.push(block)
      // A block has its own first and last line; another one belongs to a truncated block.
      if (block.split(' CERTIFICATE-----').length - 1 > (isBlock ? 2 : 0))
        faults.push(
          `half a certificate ${isBlock ? `follows certificate ${count} (line ${line})` : 'is at its start'}`,
        )
    } catch {
      faults.push(`certificate ${count} (line ${line}) is damaged`)
    }
    line += block.split('\n').length - 1
  }
  return { sound, faults }
}

/** Certificates of a PEM file. `warn` receives faults; without it they are errors. Errors: `usage`. */
export function readCertificates(path: string, warn?: (text: string) => void): string[] {
  const failed = (why: string) => new RsmError('usage', `cannot read the certificates in ${path}: ${why}`)
  let found: ReturnType<typeof certificatesIn>
  try {
    found = certificatesIn(readBoundedFile(path).toString('utf8'))
  } catch (error) {
    throw failed(whyUnreadable(error))
  }
  const { sound, faults } = found
  const [fault = 'it holds no certificate in PEM'] = faults
  if (sound.length === 0 || (warn === undefined && faults.length > 0)) throw failed(fault)
  if (faults.length > 0) warn?.(`${path}: ${faults.join(', ')}`)
  return sound
}
