import { useEffect, useState } from 'preact/hooks'
import { allPages } from '../../client/http/pages.ts'
import type { Page, PageQuery } from '../../core/protocol/http/common.ts'
import type { Host } from '../../core/protocol/http/hosts.ts'
import type { Target } from '../../core/protocol/http/targets.ts'
import { call, errorText, withQuery } from '../api.ts'

/** Hosts loaded for a selector while typing; the server also returns the total. */
const firstHosts = 500
/** Debounce of typing, in milliseconds. */
const typingPause = 250

const select = (target: Target, paging: PageQuery, signal?: AbortSignal) =>
  call<Page<Host>>('POST', withQuery('api/hosts/select', paging), {
    body: { target },
    ...(signal && { signal }),
  })

/** All hosts of a target, in natural order of names. */
export const targetHosts = async (target: Target): Promise<Host[]> =>
  (await allPages((paging) => select(target, paging), {})).content

export const fleetSize = async (): Promise<number> =>
  (await call<Page<Host>>('GET', withQuery('api/hosts', { size: 1 }))).totalElements

/** Matches of a selector, as far as known: the first hosts and their number, or an error. */
export type Named = { hosts: readonly Host[]; count: number } | { fault: string }

/** Matches of a selector while it is typed; undefined without a selector or before the answer. */
export function useNamed(selector: string): Named | undefined {
  const [named, setNamed] = useState<Named | undefined>()
  useEffect(() => {
    setNamed(undefined)
    if (selector.trim() === '') return undefined
    const controller = new AbortController()
    const update = (found: Named) => {
      if (!controller.signal.aborted) setNamed(found)
    }
    const timer = setTimeout(() => {
      select({ selector: selector.trim() }, { size: firstHosts }, controller.signal).then(
        ({ content, totalElements }) => update({ hosts: content, count: totalElements }),
        (error: unknown) => update({ fault: errorText(error) }),
      )
    }, typingPause)
    return () => {
      clearTimeout(timer)
      controller.abort()
    }
  }, [selector])
  return named
}
