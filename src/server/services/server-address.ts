import { type FieldFault, invalid } from '../../core/errors.ts'
import { readPin, showPin } from '../../core/pins.ts'
import { normalUrl } from '../../core/server-url.ts'

interface Address {
  url?: string | undefined
  fingerprint?: string | undefined
}

/** Where the server is, as the caller reaches it; `prefix` is where that stands in the body. Errors: `invalid`. */
export function checkedAddress({ url, fingerprint }: Address, prefix = ''): Address {
  const faults: FieldFault[] = []
  function checked(field: string, read: () => string): string | undefined {
    try {
      return read()
    } catch (error) {
      faults.push({ field: `${prefix}${field}`, message: (error as Error).message })
      return undefined
    }
  }
  const address = {
    url: url === undefined ? undefined : checked('url', () => normalUrl(url)),
    fingerprint:
      fingerprint === undefined ? undefined : checked('fingerprint', () => showPin(readPin(fingerprint))),
  }
  if (faults.length > 0) throw invalid(faults)
  return address
}
