import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

/** TOTP codes (RFC 6238) as all apps support them: HMAC-SHA-1, six digits, a new one every 30 s. */
const period = 30_000
const digits = 6
/** Accepted steps before and after the current one, for clock drift and typing time (RFC 6238 §5.2). */
const tolerance = 1
/** Number of steps whose codes are valid at one moment. */
export const stepsTaken = 2 * tolerance + 1
/** Bytes; RFC 4226 §4 recommends 160 bits. */
const secretLength = 20
const base32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** Base32 (RFC 4648 §6) without padding. */
function toBase32(bytes: Uint8Array): string {
  const bits = Array.from(bytes, (byte) => byte.toString(2).padStart(8, '0')).join('')
  return (bits.match(/.{1,5}/g) ?? []).map((five) => base32[Number.parseInt(five.padEnd(5, '0'), 2)]).join('')
}

function fromBase32(text: string): Buffer {
  const bits = Array.from(text, (sign) => base32.indexOf(sign).toString(2).padStart(5, '0')).join('')
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((eight) => Number.parseInt(eight, 2)))
}

/** The code of a step (RFC 4226 §5.3). */
export function codeAt(secret: string, step: number): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const mac = createHmac('sha1', fromBase32(secret)).update(counter).digest()
  const offset = (mac.at(-1) ?? 0) & 15
  return String((mac.readUInt32BE(offset) & 0x7fffffff) % 10 ** digits).padStart(digits, '0')
}

export const newSecret = (): string => toBase32(randomBytes(secretLength))

/** URI for a QR code (format: github.com/google/google-authenticator/wiki/Key-Uri-Format). */
export function uriOf(secret: string, username: string, server: string): string {
  const label = [`rsm ${server}`, username].map(encodeURIComponent).join(':')
  return `otpauth://totp/${label}?secret=${secret}&issuer=${encodeURIComponent(`rsm ${server}`)}`
}

/** The accepted step around `now` that has this code; null if there is none. */
export function stepOf(secret: string, code: string, now: number): number | null {
  const present = Math.floor(now / period)
  const given = Buffer.from(code)
  for (let step = present - tolerance; step <= present + tolerance; step++) {
    const right = Buffer.from(codeAt(secret, step))
    if (given.length === right.length && timingSafeEqual(given, right)) return step
  }
  return null
}

/** Recovery codes for users who lost their app, 50 bits each: `ABCDE-23456`. */
export function newRecoveryCodes(count: number): string[] {
  return Array.from({ length: count }, () => toBase32(randomBytes(7)).slice(0, 10).replace(/^.{5}/, '$&-'))
}

/** Normalizes a typed code: no blanks or dashes, upper case. */
export const plainCode = (typed: string): string => typed.replace(/[\s-]/g, '').toUpperCase()
