"""What Kiln has nothing for, by name and with the reason. All other ops that are missing have no body, either."""

from __future__ import annotations

from typing import NoReturn

from kiln.onnx._node import Node
from kiln.onnx._registry import op
from kiln.onnx._values import Tensor

_SEQUENCES = "Kiln has tensors alone, no sequences or maps of them"
_TEXTS = "Kiln has no texts"
_RANDOM = "its numbers are random, and ONNX does not tell of which generator; Kiln's would be others, and the same in each run"
_TREES = "Kiln has no trees of decisions, or other models than those of tensors"

_REASONS = {
    "": {
        **dict.fromkeys(("ConcatFromSequence", "Optional", "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase",
                         "SequenceInsert", "SequenceLength", "SequenceMap", "SplitToSequence"), _SEQUENCES),
        **dict.fromkeys(("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit"), _TEXTS),
        **dict.fromkeys(("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
                         "RandomUniformLike"), _RANDOM),
        "ImageDecoder": "Kiln computes with tensors, and decodes no files",
        "MaxRoiPool": "Kiln has means of boxes alone: RoiAlign"},
    "ai.onnx.ml": dict.fromkeys((
        "CastMap", "CategoryMapper", "DictVectorizer", "FeatureVectorizer", "Imputer", "LabelEncoder", "LinearClassifier",
        "LinearRegressor", "Normalizer", "OneHotEncoder", "SVMClassifier", "SVMRegressor", "Scaler", "TreeEnsemble",
        "TreeEnsembleClassifier", "TreeEnsembleRegressor", "ZipMap"), _TREES)}


def _refuse(n: Node, *inputs: Tensor | None) -> NoReturn:
    raise n.refuse(_REASONS[n.domain][n.op])


for _domain, _names in _REASONS.items():
    op(*_names, domain=_domain)(_refuse)
