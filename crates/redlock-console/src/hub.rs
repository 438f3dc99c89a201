//! One look a second, shared by all viewers: the first viewer after a second takes it, and the others get the same.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex as Shortly, MutexGuard, PoisonError},
    time::Duration,
};

use redlock_core::{InvalidKey, Redlock};
use tokio::{sync::Mutex, time::Instant};

use crate::{
    filter::{Filter, Page},
    look::{
        jobs::{InvalidJobName, JobName, remembered},
        sample::Sampler,
        slow::missed,
    },
    snapshot::{JobSnapshot, KeyDetail, Snapshot},
};

/// The looks of a console.
pub(crate) struct Hub {
    client: Redlock,
    sampler: Mutex<Sampler>,
    latest: Shortly<Option<Arc<SharedLook>>>,
    /// The keys and jobs whose pages were asked for in the last second.
    keys: Shortly<HashMap<String, (Instant, KeyDetail)>>,
    jobs: Shortly<HashMap<String, (Instant, JobSnapshot)>>,
}

/// A look, and the pages that were made of it.
pub(crate) struct SharedLook {
    taken: Instant,
    pub(crate) snapshot: Snapshot,
    pages: Shortly<Vec<(Filter, Arc<Page>)>>,
}

impl Hub {
    pub(crate) fn new(client: Redlock, sampler: Mutex<Sampler>) -> Self {
        Self {
            client,
            sampler,
            latest: Shortly::default(),
            keys: Shortly::default(),
            jobs: Shortly::default(),
        }
    }

    pub(crate) fn client(&self) -> &Redlock {
        &self.client
    }

    /// Returns the sampler, for an action that needs its connections.
    pub(crate) fn sampler(&self) -> &Mutex<Sampler> {
        &self.sampler
    }

    /// Returns the look of the last second, or takes one.
    ///
    /// # Cancel safety
    ///
    /// If the viewer that takes it goes away, the next one that waits takes it.
    pub(crate) async fn look(&self) -> Arc<SharedLook> {
        if let Some(look) = self.fresh() {
            return look;
        }
        let mut sampler = self.sampler.lock().await;
        if let Some(look) = self.fresh() {
            return look;
        }
        let look = Arc::new(SharedLook {
            snapshot: sampler.look().await,
            taken: Instant::now(),
            pages: Shortly::default(),
        });
        *shortly(&self.latest) = Some(Arc::clone(&look));
        look
    }

    fn fresh(&self) -> Option<Arc<SharedLook>> {
        let latest = shortly(&self.latest);
        let is_fresh = |look: &&Arc<SharedLook>| look.taken.elapsed() < LOOK_EVERY;
        latest.as_ref().filter(is_fresh).cloned()
    }

    /// Returns one key in detail, and begins to note what becomes of it.
    pub(crate) async fn key(&self, name: &str) -> Result<KeyDetail, InvalidKey> {
        let mut sampler = self.sampler.lock().await;
        if let Some(known) = kept(&self.keys, name) {
            return Ok(known);
        }
        let detail = sampler.look_at(name).await?;
        keep(&self.keys, name, &detail);
        Ok(detail)
    }

    /// Returns one job with all of its runs that the nodes remember.
    pub(crate) async fn job(&self, name: &str) -> Result<JobSnapshot, String> {
        if let Some(known) = kept(&self.jobs, name) {
            return Ok(known);
        }
        let job: JobName = name
            .parse()
            .map_err(|error: InvalidJobName| error.to_string())?;
        let memory = remembered(&self.client, &job).await;
        let memory = memory.map_err(|error| error.to_string())?;
        let mut snapshot = JobSnapshot::of(name, &memory, usize::MAX);
        snapshot.missed = Some(missed(&memory).await);
        keep(&self.jobs, name, &snapshot);
        Ok(snapshot)
    }

    /// Forgets what was looked at, so that the next look shows what an action has done.
    pub(crate) async fn forget(&self) {
        self.sampler.lock().await.look_at_jobs_again();
        *shortly(&self.latest) = None;
        shortly(&self.keys).clear();
        shortly(&self.jobs).clear();
    }
}

impl SharedLook {
    /// Returns what a viewer with this filter sees.
    pub(crate) fn page(&self, filter: &Filter) -> Arc<Page> {
        let mut pages = shortly(&self.pages);
        if let Some((_, page)) = pages.iter().find(|(its, _)| its == filter) {
            return Arc::clone(page);
        }
        let page = Arc::new(Page::of(&self.snapshot, filter));
        if pages.len() < MOST_PAGES {
            pages.push((filter.clone(), Arc::clone(&page)));
        }
        page
    }
}

fn kept<T: Clone>(cache: &Shortly<HashMap<String, (Instant, T)>>, name: &str) -> Option<T> {
    let cache = shortly(cache);
    let (at, kept) = cache.get(name)?;
    (at.elapsed() < LOOK_EVERY).then(|| kept.clone())
}

fn keep<T: Clone>(cache: &Shortly<HashMap<String, (Instant, T)>>, name: &str, fresh: &T) {
    let mut cache = shortly(cache);
    cache.retain(|_, (at, _)| at.elapsed() < LOOK_EVERY);
    if cache.len() < MOST_PAGES {
        cache.insert(name.to_owned(), (Instant::now(), fresh.clone()));
    }
}

fn shortly<T>(mutex: &Shortly<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The most pages of a look, and of keys and jobs of a second, that are kept for further viewers.
const MOST_PAGES: usize = 16;
/// The least time between two looks.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(1);
