import { useEffect, useState } from 'preact/hooks'
import { allPages } from '../../client/http/pages.ts'
import type { Page, PageQuery } from '../../core/protocol/http/common.ts'
import type { Host } from '../../core/protocol/http/hosts.ts'
import type { Target } from '../../core/protocol/http/targets.ts'
import { call, errorText, withQuery } from '../api.ts'

/** So many of the hosts of a selector are read while it is typed: the server says how many there are. */
const firstHosts = 500
/** Somebody who types is waited for, in milliseconds. */
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

/** What a selector names, as far as that is known: the first hosts and their number, or what is wrong with it. */
export type Named = { hosts: readonly Host[]; count: number } | { fault: string }

/** What a selector names while it is typed; undefined without one, and until the server has answered. */
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
